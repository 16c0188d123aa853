//go:build planted

package core

const planted = true
