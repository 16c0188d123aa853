package anomalies

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/decide/anomaly"
)

// Scored is a row with its score, as printed by --json.
type Scored struct {
	Timestamp string   `json:"timestamp"` // as in the file
	Score     *float64 `json:"score"`     // 0 to 1; null for a missing value
}

func (a *app) scoreCmd() *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "score --series FILE", Short: "Score how unusual each row of a series is",
		Args: command.Takes(),
		Long: "Scores each row of a CSV file with the columns timestamp and value from 0 (as ever) to 1 (never seen). A " +
			"score of 0.5 or more is an alert. The score of a row depends on the rows above it alone, so a file that " +
			"grows keeps its scores. The first 60 rows score 0. After an alert only what is stranger scores, for a tenth of " +
			"the rows so far, so one incident is one alert.\n\nRows may be seconds or days apart. Timestamps without a zone " +
			"are UTC. A row without a value (empty or NaN) has no score; a value that is not a number, or a timestamp that is " +
			"not a time, ends the command with its line. Gaps, and times that go backwards, are named on stderr.\n\n" +
			"Without --json you get the alerts. With --json you get {\"timestamp\", \"score\"} for every row, in order." +
			command.PlainExit,
		Example: "  scrimp anomalies score --series cpu.csv\n  scrimp anomalies score --series - --json < cpu.csv",
		RunE: func(cmd *cobra.Command, _ []string) error {
			in, name := a.In, "standard input"
			if file != "-" {
				f, err := os.Open(file)
				if err != nil {
					return fmt.Errorf("read %s: %w", file, err)
				}
				defer func() { _ = f.Close() }()
				in, name = f, file
			}
			return a.score(cmd.Context(), name, in)
		}}
	cmd.Flags().StringVar(&file, "series", "", "CSV `file` with the columns timestamp and value; - is standard input")
	_ = cmd.MarkFlagRequired("series")
	_ = cmd.RegisterFlagCompletionFunc("series", command.Files("csv"))
	return cmd
}

// mostNotes bounds the number of odd rows that are listed.
const mostNotes = 20

func (a *app) score(ctx context.Context, name string, in io.Reader) (err error) {
	r, err := anomaly.NewReader(name, in)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.Out)
	defer func() { err = errors.Join(err, out.Flush()) }()
	write := json.NewEncoder(out)
	d := anomaly.New()
	rows, notes := 0, 0
	var alerts []spending.Alert
	defer func() {
		if notes > mostNotes {
			a.Notef("%s: %d more rows are odd\n", name, notes-mostNotes)
		}
	}()
	for ; ; rows++ {
		if rows%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if row.Note != "" {
			if notes++; notes <= mostNotes {
				a.Notef("%s\n", row.Note)
			}
		}
		s := Scored{Timestamp: row.Text}
		if row.Known {
			score := math.Round(d.Score(row.Time, row.Value)*1e6) / 1e6
			s.Score = &score
			if score >= anomaly.Alert {
				alerts = append(alerts, spending.Alert{At: row.Text, Value: row.Value, Score: score})
			}
		}
		if a.JSON {
			if err := write.Encode(s); err != nil {
				return err
			}
		}
	}
	if !a.JSON {
		_, err = io.WriteString(out, spending.Alerts(name, rows, alerts, a.Place()))
	}
	return err
}
