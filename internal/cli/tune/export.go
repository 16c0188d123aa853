package tune

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/tracking"
)

// Formats of exported trials.
const (
	formatCSV    = "csv"
	formatOptuna = "optuna"
	formatMLflow = "mlflow"
)

// exportFlags holds the flags of scrimp tune export.
type exportFlags struct{ format, to string }

func (a *app) exportCmd() *cobra.Command {
	var f exportFlags
	formats := []string{formatCSV, formatOptuna, formatMLflow}
	cmd := &cobra.Command{
		Use:   "export STUDY [--format csv|optuna|mlflow] [-o PATH]",
		Short: "Write the trials of a search as CSV, for Optuna or for MLflow",
		Long: `Writes the trials of a search with their parameters, values and costs.

csv has one row a trial. optuna is a journal that Optuna 4 reads, with every value of the metric:
optuna.load_study(study_name=STUDY, storage=JournalStorage(JournalFileBackend(PATH))). mlflow is a folder in the
layout of MLflow's file store, with a run for each trial: mlflow ui --backend-store-uri PATH. Its runs have the
figures of the bill as metrics and tags: cost, saved (against on-demand), lost (to interruptions and failures)
and interruptions.

It overwrites nothing. With --json and csv it prints the trials as JSON.

Exit status: 0 done, 1 error.`,
		Example: "  scrimp tune export quadratic > trials.csv\n" +
			"  scrimp tune export quadratic --format optuna -o quadratic.journal\n" +
			"  scrimp tune export quadratic --format mlflow -o mlruns",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := command.Takes("STUDY")(cmd, args); err != nil {
				return err
			}
			return f.check()
		},
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.export(ctx, c, args[0], f)
		}),
	}
	cmd.Flags().StringVar(&f.format, "format", formatCSV, "`format`: "+strings.Join(formats, ", "))
	cmd.Flags().StringVarP(&f.to, "output", "o", "-",
		"`path` of the file, or of the folder for mlflow; - is the standard output")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// check refuses an unknown format, and a path where something is.
func (f *exportFlags) check() error {
	switch f.format {
	case formatCSV, formatOptuna:
	case formatMLflow:
		if f.to == "-" {
			return errors.New("--format mlflow writes a folder: name it with -o, such as -o mlruns")
		}
	default:
		return fmt.Errorf("--format %q: give csv, optuna or mlflow", f.format)
	}
	if f.to == "" {
		return errors.New("-o is empty: name a path")
	}
	if _, err := os.Lstat(f.to); f.to != "-" && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: it is there already: name another path", f.to)
	}
	return nil
}

// export writes the trials of a study.
func (a *app) export(ctx context.Context, c *command.Client, study string, f exportFlags) error {
	g, err := studyOf(ctx, c, study)
	if err != nil {
		return err
	}
	s := &tracking.Search{Group: g}
	if s.Trials, err = c.TrialCurves(ctx, g.ID); err != nil {
		return err
	}
	if a.JSON && f.format == formatCSV && f.to == "-" {
		return command.PrintEach(a.App, s.Trials)
	}
	if f.format == formatCSV {
		return a.writes(f, []byte(tracking.TrialsCSV(s)), len(s.Trials))
	}
	receipt, err := c.GroupReceipt(ctx, g.ID)
	if err != nil {
		return err
	}
	if s.Lines = receipt.Members; f.format == formatMLflow {
		return a.exportMLflow(s, f)
	}
	text, err := tracking.Optuna(s)
	if err != nil {
		return err
	}
	return a.writes(f, text, len(s.Trials))
}

// writes writes an exported file, or prints it.
func (a *app) writes(f exportFlags, text []byte, trials int) error {
	if f.to == "-" {
		a.Content(string(text))
		return nil
	}
	if err := create(f.to, text); err != nil {
		return err
	}
	return a.said(f, trials)
}

// said says what was written.
func (a *app) said(f exportFlags, trials int) error {
	if a.JSON {
		return a.Print(struct {
			Format string `json:"format"`
			Path   string `json:"path"`
			Trials int    `json:"trials"`
		}{f.format, f.to, trials})
	}
	a.Notef("%d trials written to %s\n", trials, f.to)
	return nil
}

// exportMLflow writes the folder of an MLflow file store.
func (a *app) exportMLflow(s *tracking.Search, f exportFlags) error {
	folder, err := filepath.Abs(f.to)
	if err != nil {
		return err
	}
	files, err := tracking.MLflow(s, filepath.ToSlash(folder))
	if err != nil {
		return err
	}
	for _, x := range files {
		at := filepath.Join(folder, filepath.FromSlash(x.Path))
		if strings.HasSuffix(x.Path, "/") {
			err = os.MkdirAll(at, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(at), 0o755); err == nil {
			err = create(at, []byte(x.Text))
		}
		if err != nil {
			return fmt.Errorf("write the folder %s: %w", f.to, err)
		}
	}
	return a.said(f, len(s.Trials))
}

// create writes a file that does not exist yet.
func create(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
