//go:build !planted

package lifecycle

// planted breaks the launch rule if the build tag of that name is set, to prove that the figures of `scrimp
// simulate` come from here.
const planted = false
