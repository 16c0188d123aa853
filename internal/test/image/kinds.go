package image

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
)

// Busybox is the static shell in the images, from Debian's package busybox-static.
const Busybox = "/bin/busybox"

// program is the file mode of programs.
const program = 0o755

// Shell returns an image with a shell and the usual commands, which runs the given command, like a user's image.
func Shell(name string) (Image, error) {
	body, err := os.ReadFile(Busybox)
	if err != nil {
		return Image{}, err
	}
	list, err := exec.Command(Busybox, "--list").Output() //nolint:noctx // ends at once
	if err != nil {
		return Image{}, fmt.Errorf("list commands of busybox: %w", err)
	}
	m := Image{Name: name, Cmd: []string{"/bin/sh"}, Files: []File{{Path: "/bin/busybox", Body: body, Mode: program}}}
	for _, command := range strings.Fields(string(list)) {
		if command != "busybox" {
			m.Files = append(m.Files, File{Path: "/bin/" + command, Link: "busybox"})
		}
	}
	return m, nil
}

// Pause returns an image that only holds what the containers of a pod share, and reaps its processes.
func Pause(name string) (Image, error) {
	m, err := Shell(name)
	m.Entrypoint = []string{"/bin/sh", "-c", `trap "exit 0" TERM INT; while :; do sleep 1000000 & wait $!; done`}
	m.Cmd = nil
	return m, err
}

// Agent returns an image with the agent: a static scrimp at the same path as in the published image.
func Agent(name, scrimp string) (Image, error) {
	body, err := os.ReadFile(scrimp)
	return Image{Name: name, Files: []File{{Path: "/usr/bin/scrimp", Body: body, Mode: program}}}, err
}

// Bare returns an image of one static program at /NAME, which it runs, without a shell.
func Bare(name, file string, args ...string) (Image, error) {
	body, err := os.ReadFile(file)
	at := "/" + path.Base(file)
	return Image{Name: name, Entrypoint: append([]string{at}, args...),
		Files: []File{{Path: at, Body: body, Mode: program}}}, err
}

// Foreign returns a shell image for another processor architecture, which the kernel refuses to run.
func Foreign(name string) (Image, error) {
	m, err := Shell(name)
	if err == nil && len(m.Files[0].Body) > 19 {
		const machine, s390 = 18, 22 // offset of the processor in an ELF file, and one that no test host has
		m.Files[0].Body[machine], m.Files[0].Body[machine+1] = s390, 0
	}
	return m, err
}
