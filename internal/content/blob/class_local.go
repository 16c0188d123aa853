//go:build local

package blob

import "gocloud.dev/blob"

// Class returns "": folders have no storage classes.
func Class(*blob.ListObject) string { return "" }

// Version returns "": folders have no versions of blobs.
func Version(*blob.ListObject) string { return "" }

// VersionRead returns "": folders have no versions of blobs.
func VersionRead(*blob.Reader) string { return "" }
