"""Where Interlock keeps what must outlive a process: one interface, SQLite behind it by default."""
