//go:build !linux

package marketd

func adopt() {}
