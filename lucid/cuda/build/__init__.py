"""Kernels compiled by NVRTC, beforehand or when they are launched: `python -m lucid.cuda.build` fills a folder."""
