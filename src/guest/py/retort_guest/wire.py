"""The message types and field tags of src/wire/wire.h that the guest speaks or hears."""

MSG_CELL = 0x10
MSG_ACK = 0x11
MSG_WARM = 0x12  # module.c acts on it

MSG_IDLE = 0x20
MSG_SYNC = 0x21
MSG_DISPLAY = 0x22
MSG_CLEAR = 0x23
MSG_RESULT = 0x24
MSG_ERROR = 0x25
MSG_DONE = 0x26

TAG_CODE = 1
TAG_FLAGS = 2
TAG_STATUS = 3
TAG_NUMBER = 4
TAG_TEXT = 5
TAG_NAME = 6
TAG_TRACE = 7
TAG_ERRNO = 8
TAG_MIME = 9
TAG_DATA = 10
TAG_DISPLAY_ID = 11
TAG_FRAME_FILE = 12
TAG_FRAME_LINE = 13
TAG_FRAME_NAME = 14
TAG_FRAME_TEXT = 15
TAG_CELL_NO = 16
TAG_ENV = 18
TAG_METADATA = 27

STATUS_OK = 0
STATUS_RAISED = 1
STATUS_INTERRUPTED = 2

FLAG_UPDATE = 1  # MSG_DISPLAY: replaces an earlier display with the same id
FLAG_WAIT = 1    # MSG_CLEAR: when the next output comes, not before
