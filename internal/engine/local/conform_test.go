package local

import (
	"testing"

	"scrimp/internal/engine/enginetest"
)

// The market is held to the contract by its real daemon, and its page says by which cases.
func TestDriverConforms(t *testing.T) {
	results := enginetest.Run(t, func(t testing.TB) enginetest.Rig {
		c := newCloud(t, testTrace(60))
		return enginetest.Rig{
			Driver: c, Granted: always, Empty: never, Fails: fleeing,
			Restart: func(testing.TB) { c.kill(); c.start() },
			Foreign: func(t testing.TB) string { return newCloud(t, testTrace(60)).launch("a.1", always).ID },
		}
	})
	enginetest.Page(t, "../../../docs/engines/local.md", results)
}
