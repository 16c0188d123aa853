//go:build !local

package store_test

import (
	"strings"
	"testing"

	"scrimp/internal/store/postgres"
	"scrimp/internal/test/lane"
)

// Whatever is wrong with a database address, no error repeats a part of its password, because errors reach logs.
func TestOpenPostgres_HidesThePasswordInErrors(t *testing.T) {
	lane.Component(t, "whole")
	for _, address := range []string{
		"postgres://u:pa/s3cret:wo@rd%zz@127.0.0.1:1/db", "postgres://u:se%s3cret@127.0.0.1:1/db",
		"postgres://u:s3cret:3tword@127.0.0.1:1/db?sslmode=foo", "host=127.0.0.1 password=s3cret port=x",
		"host=127.0.0.1 password = 'my s3cret' port=x", `host=127.0.0.1 port=1 password='my\'s s3cret' sslmode=foo`,
		"u:s3cret@127.0.0.1/db", "postgres://127.0.0.1:1/db?password=s3cret&user=u&sslmode=zz",
		"postgres://u:s3cret@127.0.0.1:1/db", "host=127.0.0.1 user=u port=1 password='my s3cret'",
	} {
		_, err := postgres.Open(t.Context(), postgres.Default(address, t.TempDir()))
		if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "3tword") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
