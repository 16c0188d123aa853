package local

import (
	"testing"

	"scrimp/internal/provider/providertest"
)

func TestDriverConforms(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Rig {
		c := newCloud(t, testTrace(60))
		return providertest.Rig{
			Driver: c, Granted: always, Empty: never, Fails: fleeing,
			Restart: func(*testing.T) { c.kill(); c.start() },
			Foreign: func(t *testing.T) string { return newCloud(t, testTrace(60)).launch("a.1", always).ID },
		}
	})
}
