package anomalies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/money"
)

// needsRole ends the help of commands that change alerts.
const needsRole = " It takes an operator of the team, or an admin of all teams for an alert of all teams. The audit " +
	"trail records it."

// longestReceiver bounds the receiver that a user may pipe in, in bytes.
const longestReceiver = 2048

func (a *app) alertCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "alert", Short: "Report anomalies to Slack, PagerDuty, a webhook or e-mail",
		Args: command.Takes(),
		Long: "Lists the alerts with the newest reports of each, like scrimp anomalies alert list.\n\nAn alert reports " +
			"each anomaly once when it is found, and once when it ends. It does not report snoozed, dismissed and planned " +
			"ones. The server tries again when a receiver fails, as for notify of a job." + command.PlainExit,
		Example: "  scrimp anomalies alert add --to slack:https://hooks.slack.com/services/…\n" +
			"  scrimp anomalies alert",
		RunE: a.With(a.listAlerts)}
	cmd.AddCommand(a.addAlertCmd(), a.listAlertsCmd(), a.removeAlertCmd(), a.testAlertCmd())
	return cmd
}

func (a *app) addAlertCmd() *cobra.Command {
	var b api.AddAnomalyAlert
	var above string
	cmd := &cobra.Command{Use: "add --to RECEIVER", Short: "Report new anomalies to a receiver", Args: command.Takes(),
		Long: "Reports anomalies to a receiver from now on: each once when it is found, and once when it ends. Anomalies " +
			"that are listed already are not reported. Adding the same alert again changes nothing.\n\nRECEIVER is one of " +
			"https://… (a webhook, which gets JSON), slack:https://… (an incoming webhook of Slack, or of a service with " +
			"the same form), mailto:ann@example.org (the server needs scrimp serve --smtp), pagerduty:KEY (the integration " +
			"key of the Events API v2), and pagerduty:KEY@URL (the same API at another address).\n\nThe server seals the " +
			"receiver: no list, log or answer shows more than its host or the e-mail address." + needsRole +
			command.PlainExit,
		Example: "  scrimp anomalies alert add --team vision --to mailto:ann@example.org --above '$50'\n" +
			"  scrimp anomalies alert add --to - --kind spend,idle-machine < slack-address.txt",
	}
	cmd.RunE = a.With(func(ctx context.Context, c *command.Client, _ []string) error {
		if above != "" {
			amount, err := money.Parse(strings.TrimPrefix(above, "$"))
			if err != nil {
				return fmt.Errorf("--above %s: %w: write a number such as 50; it counts in the currency of each anomaly",
					above, err)
			}
			b.Above = &amount
		}
		if b.To == "-" {
			text, err := io.ReadAll(io.LimitReader(a.In, longestReceiver+1))
			if err != nil {
				return fmt.Errorf("read standard input: %w", err)
			}
			if b.To = strings.TrimSpace(string(text)); b.To == "" || len(text) > longestReceiver {
				return errors.New("standard input is not a receiver: write one line, such as slack:https://…")
			}
		}
		v, err := c.AddAnomalyAlert(ctx, b)
		switch {
		case err != nil:
			return command.InFlags(c.Said(ctx, err), alertFields)
		case a.JSON:
			return a.Print(v)
		}
		a.Printf("%s reports anomalies of %s to %s. scrimp anomalies alert test %s tries it.\n", v.Name,
			show.Clean(spending.AlertScope(v)), show.Clean(spending.AlertReceiver(v.By, v.To)), v.Name)
		return nil
	})
	f := cmd.Flags()
	f.StringVar(&b.To, "to", "", "`receiver`; - reads it from standard input, which keeps it out of the shell's history")
	f.StringVar(&b.Team, "team", "", "anomalies of this `team` (default: of all teams)")
	f.StringVar(&above, "above", "", "anomalies with more than this `amount` at stake, in their currency, as in $50 "+
		"(default: any)")
	f.StringSliceVar(&b.Kinds, "kind", nil, "anomalies of these `kinds`, as in spend,idle-machine (default: all)")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

// alertFields are the flags of the fields that the server's errors name.
var alertFields = map[string]string{"to": "--to", "above": "--above", "team": "--team", "kinds": "--kind"}

func (a *app) listAlertsCmd() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List the alerts and their newest reports", Args: command.Takes(),
		Long: "Lists the alerts of the teams that you may see and those of all teams, with up to five reports of each: " +
			"delivered, refused, or being retried with the answer and the time of the next try." + command.PlainExit,
		Example: "  scrimp anomalies alert list",
		RunE:    a.With(a.listAlerts)}
}

func (a *app) listAlerts(ctx context.Context, c *command.Client, _ []string) error {
	list, err := c.AnomalyAlerts(ctx)
	if err != nil {
		return c.Said(ctx, err)
	}
	if a.JSON {
		return command.PrintEach(a, list)
	}
	a.Printf("%s", spending.AlertList(list, a.Place()))
	return nil
}

func (a *app) removeAlertCmd() *cobra.Command {
	return &cobra.Command{Use: "remove NAME", Short: "Remove an alert", Args: command.Takes("NAME"),
		Long: "Removes an alert, with what it has not reported yet and the record of its reports." + needsRole +
			command.PlainExit,
		Example: "  scrimp anomalies alert remove al-0123456789",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			if err := c.RemoveAnomalyAlert(ctx, args[0]); err != nil {
				return c.Said(ctx, err)
			}
			return a.Showf(map[string]string{"removed": args[0]}, "%s is removed.\n", show.Clean(args[0]))
		})}
}

func (a *app) testAlertCmd() *cobra.Command {
	return &cobra.Command{Use: "test NAME", Short: "Send a marked report to the receiver of an alert",
		Args: command.Takes("NAME"),
		Long: "Sends a report that is marked as a test to the receiver of an alert, once, and prints what became of it. " +
			"At PagerDuty the test begins an incident and ends it." + needsRole +
			"\n\nExit status: 0 if the receiver accepted it, 1 otherwise.",
		Example: "  scrimp anomalies alert test al-0123456789",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			n, err := c.TestAnomalyAlert(ctx, args[0])
			if err != nil {
				return c.Said(ctx, err)
			}
			if a.JSON {
				if err := a.Print(n); err != nil {
					return err
				}
			}
			to := show.Clean(spending.AlertReceiver(n.By, n.To))
			if n.State != api.Delivered {
				return fmt.Errorf("%s did not take the test: %s", to, show.Clean(n.Error))
			}
			if !a.JSON {
				a.Printf("%s took the test.\n", to)
			}
			return nil
		})}
}
