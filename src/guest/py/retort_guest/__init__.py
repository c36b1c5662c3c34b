"""retort_guest: what runs inside the box: a warm IPython that takes cells from a socket.

Touches: this process alone: its streams, its IPython shell, the socket behind _retort.
Never touches: namespaces, limits, anything on the host. It is not a guard: the code it
runs can change every object in here, and the sandbox must hold without it.

zygote.py prepares the interpreter once; kernel.py is the life of one forked child. The
road to the server is link.py, and nothing else sends.
"""
