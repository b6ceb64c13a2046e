"""The nouns every part of Interlock shares. Types only: nothing here does I/O or imports another folder."""
