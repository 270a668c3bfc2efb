"""Replay of a communication trace: step time, exposed communication, critical path and lower bound."""
