package store_test

import (
	"os"
	"testing"

	"scrimp/internal/test/storetest"
	"scrimp/internal/test/storetest/suite"
)

// backends lists the backends in this build.
var backends = []storetest.Backend{onSQLite}

// TestMain also runs the child processes that the suite kills.
func TestMain(m *testing.M) { os.Exit(suite.Main(m, backends...)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
