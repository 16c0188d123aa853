//go:build local

package store

import (
	"context"
	"errors"
)

// OpenPostgres is part of the whole program only: a newcomer does not wait for its driver to build.
func OpenPostgres(context.Context, PostgresConfig) (Replica, error) {
	return nil, errors.New("open the database: this program was built without PostgreSQL: make build makes the whole one")
}

// Away is part of the whole program only.
func Away(error) bool { return false }
