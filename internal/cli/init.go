package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/job/scaffold"
)

func (a *app) initCmd() *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "init [FOLDER]", Short: "Write a first job file from the files of the folder",
		Args: command.Takes("[FOLDER]"), GroupID: command.GroupRun, ValidArgsFunction: command.CompleteFolder,
		Long: "Reads the files of a folder and writes a first job file there: how to start the program and install its " +
			"packages, where it saves, how it prints its progress. It runs nothing and overwrites nothing. It prints each " +
			"guess with its evidence, which is also a comment in the file." + command.PlainExit,
		RunE: func(_ *cobra.Command, args []string) error {
			folder := "."
			if len(args) == 1 {
				folder = args[0]
			}
			abs, err := filepath.Abs(folder)
			if err != nil {
				return err
			}
			d := scaffold.Scan(os.DirFS(abs), filepath.Base(abs))
			return a.writeNew(filepath.Join(folder, file), d.YAML, d.Guesses)
		}}
	cmd.Flags().StringVarP(&file, "output", "o", "job.yaml", "`file` to write, in the folder")
	return cmd
}

// writeNew writes a file unless it exists.
func (a *app) writeNew(path string, text []byte, guesses []scaffold.Guess) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already: name another with -o", path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	written := show.Written{File: path, Guesses: guesses}
	return a.Show(written, written.Text(a.Place()))
}
