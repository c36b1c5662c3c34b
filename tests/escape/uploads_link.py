"""Makes /home/uploaded_files, a link into its workspace, lead somewhere else.

The root is read-only: the link stays, and what is below it is the session's own.
"""

from outside import cell, same

GUEST = """
link = "/home/uploaded_files"
os.makedirs("/workspace/uploaded_files", exist_ok=True)
report(
    leads=os.readlink(link),
    removed=attempt(os.unlink, link),
    renamed=attempt(os.rename, link, "/home/other"),
    replaced=attempt(os.symlink, "/etc", "/home/other"),
    written=attempt(lambda: open(link + "/note", "w").write("note")),
    same=os.path.samefile(link + "/note", "/workspace/uploaded_files/note"),
    above=sorted(os.listdir(link + "/..")) == sorted(os.listdir("/workspace")),
)
"""


def check(box):
    same(
        box.ok(box.run(cell(GUEST))),
        {
            "leads": "/workspace/uploaded_files",
            "removed": "EROFS",
            "renamed": "EROFS",
            "replaced": "EROFS",
            "written": "ok",
            "same": True,
            "above": True,
        },
    )
