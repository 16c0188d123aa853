package local

import (
	"testing"

	"scrimp/internal/engine/enginetest"
)

func TestDriverConforms(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) enginetest.Rig {
		c := newCloud(t, testTrace(60))
		return enginetest.Rig{
			Driver: c, Granted: always, Empty: never, Fails: fleeing,
			Restart: func(*testing.T) { c.kill(); c.start() },
			Foreign: func(t *testing.T) string { return newCloud(t, testTrace(60)).launch("a.1", always).ID },
		}
	})
}
