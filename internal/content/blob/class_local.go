//go:build local

package blob

import "gocloud.dev/blob"

// Class returns "": folders have no storage classes.
func Class(*blob.ListObject) string { return "" }
