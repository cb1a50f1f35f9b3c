"""NVIDIA's libraries: cuBLAS and cuDNN, their plans and workspaces."""
