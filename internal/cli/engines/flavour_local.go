//go:build local

package engines

import (
	"context"
	"errors"

	"scrimp/internal/engine"
)

// flavour describes the stores and engines of this build.
const flavour = "built with the tag local: checkpoints go to folders only, and there is neither Kubernetes nor " +
	"AWS; make build adds them"

// openKubernetes refuses: client-go takes a minute to compile, too long for a first build.
func openKubernetes(context.Context, engine.Setting, engine.Host) (engine.Engine, error) {
	return engine.Engine{}, errors.New("this program was built without Kubernetes (tag local): make build makes " +
		"build/scrimp-full, which has it")
}

// openAWS refuses: the AWS SDK takes long to compile, too.
func openAWS(context.Context, engine.Setting, engine.Host) (engine.Engine, error) {
	return engine.Engine{}, errors.New("this program was built without AWS (tag local): make build makes " +
		"build/scrimp-full, which has it")
}
