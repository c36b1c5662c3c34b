"""Goes on writing after its cell has ended, until and beyond the copying.

Background processes live on between cells; whatever they write, the copy is of one moment and the
program ends when the last cell has.
"""

from outside import cell, holds, processes_with, same, until

GUEST = """
code = '''
import os, time
end = time.monotonic() + 1000
while time.monotonic() < end:
    for n in range(20):
        open("/workspace/f%d" % n, "w").write("x" * 1000)
        os.unlink("/workspace/f%d" % n)
'''
subprocess.Popen([sys.executable, "-c", code, MARK], start_new_session=True)
time.sleep(0.2)
"""


def check(box):
    mark = f"late-{box.tmp.name}"
    out = box.dir("out")
    run = box.run(cell(GUEST, MARK=mark), flags=["--out", out])
    holds(run.exit == 0, run.brief())
    until(lambda: not processes_with(mark), "the guest's processes to be gone")
    same([p for p in out.iterdir() if not p.is_file()], [], "what is not a plain file")
