"""The position's keeper: who may write it, where it is kept, and when."""
