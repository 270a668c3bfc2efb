"""Weights in and out as Hugging Face checkpoints: safetensors, an index, and a configuration."""
