//go:build local

package postgres

import (
	"context"
	"errors"

	"scrimp/internal/store"
)

// Open fails in this build, which leaves PostgreSQL out so that a newcomer need not compile the driver.
func Open(context.Context, Config) (store.Replica, error) {
	return nil, errors.New("open the database: this program was built without PostgreSQL: make build makes the whole one")
}

// Away returns false in this build.
func Away(error) bool { return false }
