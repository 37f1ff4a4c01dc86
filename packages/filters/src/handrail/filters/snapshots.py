"""The syrupy extension that keeps transcripts in `.hand` files, one file a snapshot.

Loaded when a transcript is compared with a snapshot, for it needs syrupy (`handrail-filters[testing]`).
"""

from typing import Any

from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode


class HandSnapshotExtension(SingleFileSnapshotExtension):
    """Transcripts as text: `__snapshots__/test_module/test_name.hand`."""

    file_extension = "hand"
    _write_mode = WriteMode.TEXT

    def serialize(self, data: Any, **options: Any) -> str:
        """The text of a transcript as it is."""
        return str(data)


def matches(text: str, snapshot: SnapshotAssertion) -> bool:
    """Whether the snapshot holds this text; with `--snapshot-update` it does from then on."""
    # Known to the session, the extension's files are found when their tests are gone.
    snapshot.use_extension(HandSnapshotExtension)
    return snapshot(extension_class=HandSnapshotExtension) == text
