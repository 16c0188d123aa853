package workdir

import (
	"errors"
	"strings"
	"testing"

	"scrimp/internal/server/disk"
)

// A folder that is on its way is cut off when the disk has no room left for it beside the log.
func TestAFolderOnItsWayLeavesTheLogItsRoom(t *testing.T) {
	t.Parallel()
	free := int64(disk.LogReserve)
	r := &roomy{room: func() (int64, bool) { return free, true }, from: strings.NewReader("some text")}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	free--
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, ErrNoRoom) {
		t.Errorf("a folder that is on its way goes on: %v", err)
	}
}
