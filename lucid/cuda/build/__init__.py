"""Kernels compiled by NVRTC: `python -m lucid.cuda.build` fills a folder with them, and others are compiled when needed."""
