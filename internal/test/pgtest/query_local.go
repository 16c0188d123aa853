//go:build local

package pgtest

import "errors"

// query fails: a program that is built for one machine speaks to no PostgreSQL.
func query(string, string) ([]string, error) { return nil, errors.New("built without PostgreSQL") }
