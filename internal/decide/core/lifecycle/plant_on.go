//go:build planted

package lifecycle

const planted = true
