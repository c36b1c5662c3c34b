"""What packages ask of get_ipython().kernel, which a notebook's shell has and a terminal's lacks.

pandas looks whether it is there, or else leaves out columns; ipywidgets and its kin register the
targets of their comms with it when they are imported. No frontend answers here: a comm opened by
a cell goes nowhere, and a widget is shown by its bundle.
"""


class CommManager:
    """Keeps what it is given, under the names that ipykernel's and comm's have for it."""

    def __init__(self):
        self.targets = {}
        self.comms = {}

    def register_target(self, target_name, f):
        self.targets[target_name] = f

    def unregister_target(self, target_name, f):
        return self.targets.pop(target_name)

    def register_comm(self, comm):
        self.comms[comm.comm_id] = comm
        return comm.comm_id

    def unregister_comm(self, comm):
        self.comms.pop(comm.comm_id, None)

    def get_comm(self, comm_id):
        return self.comms.get(comm_id)


class Kernel:
    def __init__(self):
        self.comm_manager = CommManager()

    def get_parent(self, channel="shell"):
        """The message that asked for the cell: none, there are no messages."""
        return {}
