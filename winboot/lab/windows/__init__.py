"""One Windows Server machine as a model behind one door (`door.py`); standard library only."""
