package cli

import (
	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
)

// kinds are the kinds of engines that this program has: here alone drivers are named.
var kinds = map[string]engine.Opener{local.Kind: local.Open}
