package spec

import (
	"strings"
	"testing"
)

// A reference that registries accept is an image, for a job and for an alternative. Others are refused with the line
// and the fix.
func TestIsImage_AcceptsWhatRegistriesAccept(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for _, good := range []string{
		"ubuntu", "ubuntu:24.04", "pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime", "ghcr.io/a/b_c/d.e:V3", "localhost:5000/x",
		"nvcr.io/nvidia/pytorch" + digest, "R.example.org:443/a__b/c--d:1" + digest, "10.0.0.1:5000/team/train",
	} {
		j, _, err := Parse(Run, "job.yaml", []byte("command: a\nimage: "+good+"\nany_of: [{engine: k8s, image: \""+good+"\"}]\n"), "j",
			settingsNow)
		if err != nil || j.Image != good || j.AnyOf[0].Image != good || len(j.Places()) != 0 {
			t.Errorf("%s: %+v, %v", good, j, err)
		}
	}
	for bad, fix := range map[string]string{
		"docker:ubuntu:24.04": "write ubuntu:24.04", "docker://a/b": "write a/b", "a b": "as docker pull takes it",
		"https://example.org/a": "as docker pull takes it", "a/Train:v1": "as docker pull takes it", "/a": "as docker pull takes it",
		"a:": "as docker pull takes it", "a@sha256:12": "as docker pull takes it", "ami-0abc:": "as docker pull takes it",
		"-rm": "as docker pull takes it", "a\nb": "as docker pull takes it", strings.Repeat("a", 513): "shorten it",
	} {
		for _, field := range []string{"image", "any_of[0].image"} {
			j := Job{Name: "j", Command: "a", Image: bad}
			if field != "image" {
				j.Image, j.AnyOf = "", []Variant{{Image: bad}}
			}
			_, err := j.Set(Run, settingsNow)
			if err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), fix) {
				t.Errorf("%s: %.40q: %v", field, bad, err)
			}
		}
	}
	own := Job{Name: "j", Command: "a", AnyOf: []Variant{{Image: "a/b"}}}
	if _, err := own.Set(Run, settingsNow, Setting{"--image", "image", "c/d"}); err == nil || !strings.Contains(err.Error(), "any_of") {
		t.Errorf("a flag goes over alternatives with images of their own: %v", err)
	}
}
