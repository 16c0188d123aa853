package spec

import (
	"fmt"
	"regexp"
	"strings"
)

// longestImage bounds an image reference, in bytes.
const longestImage = 512

// imageForm matches an image reference: [HOST[:PORT]/]PATH[:TAG][@sha256:DIGEST]. A path is in lower case; only a
// leading host may have capitals.
var imageForm = regexp.MustCompile(`^(?:` + imageHost + `/)?` + imagePart + `(?:/` + imagePart + `)*` +
	`(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`)

const (
	imageHost = `[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?`
	imagePart = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
)

// IsImage reports whether the text is a reference to a container image.
func IsImage(s string) bool { return len(s) <= longestImage && imageForm.MatchString(s) }

// image checks a reference against the form that registries accept.
func (c *checker) image(field, image string) {
	if image == "" || IsImage(image) {
		return
	}
	fix := "write it as docker pull takes it, such as pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime"
	scheme, rest, found := strings.Cut(image, ":")
	if rest = strings.TrimPrefix(rest, "//"); found && scheme == "docker" && IsImage(rest) {
		fix = "write " + rest
	}
	c.wrong(true, field, fmt.Sprintf("is %q, which is no reference to an image", image), fix)
}
