package agent

import (
	"context"

	"scrimp/internal/agent/save"
	"scrimp/internal/api"
)

// keeper is the store of one attempt: its claim on the job's checkpoints, and
// the place of its outputs.
type keeper interface {
	save.Vault
	// Restore puts the newest checkpoint that verifies into folder dir, and
	// says which ones it passed over. restored is empty where there is none.
	Restore(ctx context.Context, dir string) (r restored, refused []api.Refused, err error)
	// Fetch copies the work folder from a store's address into folder dir.
	Fetch(ctx context.Context, address, dir string) error
	// Keep copies the named folders below dir to the place of outputs, and says where they are.
	Keep(ctx context.Context, dir string, folders []string) (string, error)
	Close() error
}

// restored is the checkpoint that a program begins from.
type restored struct {
	Manifest string
	Step     int64
}
