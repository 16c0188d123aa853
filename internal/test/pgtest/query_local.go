//go:build local

package pgtest

import "errors"

// query fails: a build for one host has no PostgreSQL client.
func query(string, string) ([]string, error) { return nil, errors.New("built without PostgreSQL") }
