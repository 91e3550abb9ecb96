"""What blobs as files promise beyond the contract: crashes, power cuts, a full disk."""

from __future__ import annotations

import errno
import stat
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from scrubjay.adapters.blobs.files import FileBlobs
from scrubjay.adapters.disk import Disk, Step
from scrubjay.model.errors import Full, NotFound, StoreError
from tests.support.disk import Killed, PowerCut, Steps

OLD, NEW = b"old " * 1000, b"new " * 3000
AT = ("scope", "body")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "blobs"
    FileBlobs(directory).put(*AT, OLD)
    return directory


def test_a_put_that_dies_leaves_the_old_content_or_the_new(tmp_path: Path) -> None:
    for number in count():
        root = tmp_path / str(number)
        FileBlobs(root).put(*AT, OLD)
        try:
            FileBlobs(root, disk=Disk(Steps(die_at=number))).put(*AT, NEW)
        except Killed:
            assert FileBlobs(root).get(*AT) in (OLD, NEW)
            assert FileBlobs(root).names("scope") == ["body"]
        else:
            assert number > 5
            return


def test_after_a_power_cut_a_put_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    for number in count():
        root, restored = tmp_path / f"{number}", tmp_path / f"{number}-restored"
        root.mkdir()
        power = PowerCut(root, die_at=number)
        blobs = FileBlobs(root, disk=Disk(power))
        try:
            blobs.put(*AT, NEW)
        except Killed:
            after = FileBlobs(power.restore(restored))
            assert after.names("scope") in ([], ["body"])
            assert all(after.get("scope", name) == NEW for name in after.names("scope"))
        else:
            assert FileBlobs(power.restore(restored)).get(*AT) == NEW
            return


def test_a_deleted_blob_does_not_come_back_after_a_power_cut(tmp_path: Path) -> None:
    power = PowerCut(tmp_path / "blobs")
    (tmp_path / "blobs").mkdir()
    blobs = FileBlobs(tmp_path / "blobs", disk=Disk(power))
    blobs.put(*AT, OLD)
    blobs.delete(*AT)
    with pytest.raises(NotFound):
        FileBlobs(power.restore(tmp_path / "restored")).get(*AT)


def test_a_removed_scope_does_not_come_back_after_a_power_cut(tmp_path: Path) -> None:
    power = PowerCut(tmp_path / "blobs")
    (tmp_path / "blobs").mkdir()
    blobs = FileBlobs(tmp_path / "blobs", disk=Disk(power))
    blobs.put(*AT, OLD)
    blobs.put("scope", "other", OLD)
    blobs.remove("scope")
    restored = power.restore(tmp_path / "restored")
    assert FileBlobs(restored).names("scope") == []
    assert list(restored.iterdir()) == []


def leave_half_a_blob(root: Path) -> None:
    with pytest.raises(Killed):
        FileBlobs(root, disk=Disk(Steps(die_at=6))).put("scope", "late", NEW)
    assert len(list((root / "scope").iterdir())) == 2


def test_raw_shows_what_a_dead_writer_left_and_names_do_not(root: Path) -> None:
    leave_half_a_blob(root)
    assert FileBlobs(root).names("scope") == ["body"]
    assert (NEW in [content for _, content in FileBlobs(root).raw("scope")]) is True


def test_the_next_put_removes_what_a_dead_writer_left(root: Path) -> None:
    leave_half_a_blob(root)
    FileBlobs(root).put("scope", "other", OLD)
    assert [content for _, content in FileBlobs(root).raw("scope")] == [OLD, OLD]


def test_the_next_delete_removes_what_a_dead_writer_left(root: Path) -> None:
    leave_half_a_blob(root)
    FileBlobs(root).delete("scope", "absent")
    assert [content for _, content in FileBlobs(root).raw("scope")] == [OLD]


def test_remove_removes_what_a_dead_writer_left(root: Path) -> None:
    leave_half_a_blob(root)
    FileBlobs(root).remove("scope")
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    ("moment", "drafts"), [(Step.CLAIM, 2), (Step.WRITE, 1), (Step.SYNC, 1), (Step.RENAME, 1)]
)
def test_a_writer_at_work_is_not_taken_for_a_dead_one(
    root: Path, moment: Step, drafts: int
) -> None:
    """Somebody else puts, and so sweeps, in the middle of a put; only a draft just made may go."""
    steps = Steps()

    def interrupt(step: Step, path: Path) -> None:
        if step is moment and step not in [taken for taken, _ in steps.taken]:
            FileBlobs(root).put("scope", "other", OLD)
        steps(step, path)

    FileBlobs(root, disk=Disk(interrupt)).put(*AT, NEW)
    assert [step for step, _ in steps.taken].count(Step.CREATE) == drafts
    assert FileBlobs(root).get(*AT) == NEW
    assert sorted(content for _, content in FileBlobs(root).raw("scope")) == [NEW, OLD]


def test_a_scope_removed_in_the_middle_of_a_put_is_made_again(root: Path) -> None:
    seen: list[Path] = []

    def interrupt(step: Step, path: Path) -> None:
        if step is Step.CREATE and not seen:
            seen.append(path)
            FileBlobs(root).remove("scope")

    FileBlobs(root, disk=Disk(interrupt)).put(*AT, NEW)
    assert seen
    assert [content for _, content in FileBlobs(root).raw("scope")] == [NEW]


def test_a_scope_removed_again_and_again_is_a_store_error(root: Path) -> None:
    def interrupt(step: Step, _: Path) -> None:
        if step is Step.CREATE:
            FileBlobs(root).remove("scope")

    with pytest.raises(StoreError, match="again and again"):
        FileBlobs(root, disk=Disk(interrupt)).put(*AT, NEW)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (errno.ENOSPC, Full),
        (errno.EDQUOT, Full),
        (errno.EIO, StoreError),
        (errno.EACCES, StoreError),
        (errno.EROFS, StoreError),
    ],
)
def test_whatever_the_system_refuses_is_an_error_of_ours(
    root: Path, code: int, error: type[StoreError]
) -> None:
    """It is raised at every step of a put, and leaves the old content or the new."""
    for number in range(steps_of_a_put(root)):
        blobs = FileBlobs(root, disk=Disk(Steps(fail_at=number, errno=code)))
        with pytest.raises(error) as raised:
            blobs.put(*AT, NEW)
        assert raised.type is error
        assert isinstance(raised.value.__cause__, OSError)
        assert len(list((root / "scope").iterdir())) == 1
        assert FileBlobs(root).get(*AT) in (OLD, NEW)


def steps_of_a_put(root: Path) -> int:
    steps = Steps()
    FileBlobs(root, disk=Disk(steps)).put(*AT, OLD)
    return len(steps.taken)


def test_a_file_the_system_does_not_let_grow_is_full(root: Path) -> None:
    """The real thing: the system itself refuses to write more than 100 KB."""
    program = (
        "import resource, sys; from pathlib import Path\n"
        "from scrubjay.adapters.blobs.files import FileBlobs\n"
        "from scrubjay.model.errors import Full\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try: FileBlobs(Path(sys.argv[1])).put('scope', 'body', bytes(1_000_000))\n"
        "except Full: sys.exit(7)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(root)], check=False)
    assert ran.returncode == 7
    assert [content for _, content in FileBlobs(root).raw("scope")] == [OLD]


def test_only_the_owner_may_look(root: Path) -> None:
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "scope").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "scope" / "body").stat().st_mode) == 0o600


def test_a_folder_in_the_place_of_a_blob_is_a_store_error(root: Path) -> None:
    (root / "scope" / "folder").mkdir()
    with pytest.raises(StoreError):
        FileBlobs(root).get("scope", "folder")
