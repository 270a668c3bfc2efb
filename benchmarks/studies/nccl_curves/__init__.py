"""Predicted collectives against published curves of nccl-tests."""
