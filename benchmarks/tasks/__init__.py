"""One file per task; nothing outside this folder names a task."""
