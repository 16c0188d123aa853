package cli

import (
	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/engine/slurm"
	"scrimp/internal/engine/ssh"
)

// kinds maps the engine kinds of this program to their drivers. Only this file names drivers.
var kinds = map[string]engine.Opener{local.Kind: local.Open, slurm.Kind: slurm.Open, ssh.Kind: ssh.Open,
	"kubernetes": openKubernetes, "aws": openAWS}
