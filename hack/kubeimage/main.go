// Command kubeimage writes a container image for nodes that can reach no registry:
//
//	kubeimage shell|pause|foreign NAME FILE
//	kubeimage agent NAME FILE SCRIMP
//	kubeimage bare NAME FILE PROGRAM [ARGUMENT]...
package main

import (
	"fmt"
	"os"

	"scrimp/internal/test/image"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kubeimage:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	kinds := map[string]func(string) (image.Image, error){
		"shell": image.Shell, "pause": image.Pause, "foreign": image.Foreign}
	var m image.Image
	switch {
	case len(args) == 3 && kinds[args[0]] != nil:
		m, err = kinds[args[0]](args[1])
	case len(args) == 4 && args[0] == "agent":
		m, err = image.Agent(args[1], args[3])
	case len(args) > 3 && args[0] == "bare":
		m, err = image.Bare(args[1], args[3], args[4:]...)
	default:
		return fmt.Errorf("usage: kubeimage shell|pause|foreign NAME FILE, kubeimage agent NAME FILE SCRIMP, " +
			"kubeimage bare NAME FILE PROGRAM [ARGUMENT]")
	}
	if err != nil {
		return err
	}
	return m.Write(args[2])
}
