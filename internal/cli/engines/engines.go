package engines

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/engine"
	"scrimp/internal/engine/ssh"
	"scrimp/internal/engine/ssh/setting"
	"scrimp/internal/server"
	"scrimp/money"
)

func (a *app) engineCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "engine", Short: "What machines are rented from: add, test, remove",
		GroupID: command.GroupRest,
		Long: "Engines are what machines are rented from: the local market, machines of your own by ssh, a Slurm " +
			"cluster, a Kubernetes cluster. They stand in engines.yaml in the data folder; docs/engines says what each kind " +
			"has there. A change takes effect when the server restarts."}
	cmd.AddCommand(a.engineAddCmd(), a.engineListCmd(), a.engineTestCmd(), a.engineTokenCmd(), a.engineRmCmd())
	return cmd
}

// addFlags holds the flags of engine add.
type addFlags struct {
	kind, with, rate, marginal, team, config, agents string
	hosts, joins                                     []string
	accept                                           bool
}

func (a *app) engineAddCmd() *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{Use: "add NAME", Short: "Add an engine", Args: command.Takes("NAME"),
		Long: "Adds an engine and tests it. --ssh names a machine of your own as you name it to ssh, which reads your " +
			"ssh configuration, keys and jump hosts. --join names a machine that connects to the server by itself: scrimp " +
			"prints the command to run there, with its token. --rate is what an hour of one of them costs in all while it " +
			"is used, --marginal the part of that which you save while it is idle. --with describes engines of another " +
			"kind." +
			command.PlainExit,
		Example: "  scrimp engine add lab --ssh ann@gpu1 --ssh ann@gpu2 --rate 0.80 --marginal 0.12\n" +
			"  scrimp engine add rack --join gpu3 --rate 0.80\n" +
			"  scrimp engine add cluster --kind slurm --with 'partitions: [{name: gpu, rate: 1.20}]'\n" +
			"  scrimp engine add k8s --kind kubernetes --agents listen --with '{image: python:3.12-slim, agent_image: " +
			"registry.example.org/scrimp:1.0, pools: [{name: std, cpus: 4, memory: 16GiB, rate: 0.20, selector: {pool: std}}]}'",
		RunE: func(cmd *cobra.Command, args []string) error { return a.addEngine(cmd.Context(), args[0], &f) }}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.hosts, "ssh", nil, "a machine of your own, as `USER@HOST` or a name of your ssh "+
		"configuration; may be repeated (default: none)")
	flags.StringArrayVar(&f.joins, "join", nil, "`name` of a machine of your own that connects to the server by itself, "+
		"with scrimp agent join; may be repeated (default: none)")
	flags.StringVar(&f.rate, "rate", "", "`price` of an hour of one machine in use (default: unknown is not zero: it "+
		"must be said)")
	flags.StringVar(&f.marginal, "marginal", "", "`part` of the rate that an hour costs only when the machine is "+
		"used (default: 0)")
	flags.StringVar(&f.team, "team", "", "`team` whose cost the hours are that nobody uses (default: nobody's)")
	flags.StringVar(&f.config, "ssh-config", "", "`file` that ssh reads (default: your own)")
	flags.StringVar(&f.agents, "agents", "", "how machines reach the server: ssh, listen or a `URL` (default: as the "+
		"kind has it)")
	flags.StringVar(&f.kind, "kind", "", "`kind` of the engine (default: ssh)")
	flags.StringVar(&f.with, "with", "", "what only engines of the kind have, as `YAML` (default: by the other flags)")
	flags.BoolVar(&f.accept, "accept-host-keys", false, "accept the keys of machines that ssh does not know "+
		"(default: ask)")
	return cmd
}

// setting returns the engine that the flags describe.
func (f *addFlags) setting(name string) (s engine.Setting, err error) {
	s = engine.Setting{Name: name, Kind: f.kind, Agents: f.agents}
	if f.with != "" {
		err = f.described(&s)
		return s, err
	}
	if err := f.missing(); err != nil {
		return s, err
	}
	with, err := f.machines()
	if err != nil {
		return s, err
	}
	s.Kind, s.With = ssh.Kind, engine.WithOf(with)
	_, err = setting.Read(&s)
	return s, err
}

// described reads --with, the whole description of an engine, into s.
func (f *addFlags) described(s *engine.Setting) error {
	if len(f.hosts)+len(f.joins) > 0 || f.rate != "" || f.marginal != "" || f.team != "" || f.config != "" {
		return errors.New("--with says all of an engine: leave out " +
			"--ssh, --join, --rate, --marginal, --team and --ssh-config")
	}
	if s.Kind == "" {
		return errors.New("--with needs --kind: which one is described")
	}
	if err := yaml.Unmarshal([]byte(f.with), &s.With); err != nil {
		return fmt.Errorf("--with: %w", err)
	}
	return nil
}

// missing returns an error if the flags do not fully describe machines reached by ssh.
func (f *addFlags) missing() error {
	switch {
	case f.kind != "" && f.kind != ssh.Kind:
		if Kinds[f.kind] == nil {
			return unknownKind(f.kind)
		}
		return fmt.Errorf("an engine of kind %s is described by --with: docs/engines/%s.md says how", f.kind, f.kind)
	case len(f.hosts)+len(f.joins) == 0:
		return errors.New("no machine is named: give --ssh USER@HOST, --join NAME, or --kind and --with")
	case f.rate == "":
		return errors.New("--rate is missing: what an hour of a machine costs, used or not (price over its life, power, " +
			"room); --rate 0 where it is to count as free")
	}
	return nil
}

// machines encodes the flags as the with section of an ssh engine.
func (f *addFlags) machines() (with *yaml.Node, err error) {
	with = &yaml.Node{Kind: yaml.MappingNode}
	set := func(name string, v any) {
		var k, n yaml.Node
		if err = errors.Join(err, k.Encode(name), n.Encode(v)); err == nil {
			with.Content = append(with.Content, &k, &n)
		}
	}
	for _, v := range []struct{ name, value string }{{"rate", f.rate}, {"marginal", f.marginal}, {"team", f.team},
		{"config", f.config}} {
		if v.name == "config" && v.value != "" {
			if v.value, err = filepath.Abs(v.value); err != nil {
				return nil, err
			}
		}
		if v.value == "" {
			continue
		}
		v.value = strings.TrimPrefix(v.value, "$")
		if _, err := money.ParseRate(v.value); err != nil && (v.name == "rate" || v.name == "marginal") {
			return nil, fmt.Errorf("--%s: %w: write what an hour costs, as 0.80", v.name, err)
		}
		set(v.name, v.value)
	}
	hosts := []any{}
	for _, h := range f.hosts {
		hosts = append(hosts, h)
	}
	for _, name := range f.joins {
		hosts = append(hosts, map[string]string{"join": name})
	}
	set("hosts", hosts)
	return with, err
}

func (a *app) addEngine(ctx context.Context, name string, f *addFlags) error {
	if err := a.owns(); err != nil {
		return err
	}
	s, err := f.setting(name)
	if err != nil {
		return err
	}
	if Kinds[s.Kind] == nil {
		return unknownKind(s.Kind)
	}
	if err := engine.AddSetting(a.Data, &s); err != nil {
		return err
	}
	failed, err := a.firstLook(ctx, &s, f.accept)
	if err != nil {
		return errors.Join(err, engine.RemoveSetting(a.Data, name), setting.RevokeTokens(a.Data, name))
	}
	if !a.JSON {
		a.Printf("Engine %s is added to %s. It counts when the server restarts: scrimp server stop, and the next command "+
			"starts one; what runs goes on.\n", name, filepath.Join(a.Data, engine.SettingsName))
		if failed {
			a.Printf("Some of it failed. Try again with: scrimp engine test %s\n", name)
		}
	}
	if failed {
		return command.Failed
	}
	return nil
}

func unknownKind(kind string) error {
	return engine.UnknownKind(kind, []string{"aws", "kubernetes", "local", "slurm", "ssh"})
}

// owns refuses if the server, and therefore its engines, are on another machine.
func (a *app) owns() error {
	if away, err := a.Far(a.Data); err != nil || away != nil {
		return errors.Join(err, errors.New("the engines are set where the server is: run this there"))
	}
	return nil
}

// examine prints the findings about an engine and reports whether one is a problem.
func (a *app) examine(ctx context.Context, s *engine.Setting, accept bool) (failed bool, err error) {
	if s.Kind == ssh.Kind {
		if err := a.acceptKeys(ctx, s, accept); err != nil {
			return false, err
		}
	}
	if list, ok := a.findings(ctx, s); ok {
		return a.printFindings(list)
	}
	e, err := a.tried(ctx, s)
	if err != nil {
		return false, err
	}
	d, ok := e.Driver.(engine.Examiner)
	if !ok {
		return false, fmt.Errorf("engine %s: scrimp doctor says how the local market stands", s.Name)
	}
	if c, ok := e.Driver.(engine.Closer); ok {
		defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	}
	return a.printFindings(checksOf(d.Examine(ctx)))
}

// tried opens an engine in order to examine it.
func (a *app) tried(ctx context.Context, s *engine.Setting) (engine.Engine, error) {
	dir, err := filepath.Abs(a.Data)
	if err != nil {
		return engine.Engine{}, err
	}
	open := Kinds[s.Kind]
	if open == nil {
		return engine.Engine{}, fmt.Errorf("%s: engine %s: %w", engine.SettingsName, s.Name, unknownKind(s.Kind))
	}
	e, err := open(ctx, *s, engine.Host{Dir: dir, Socket: "unix://" + filepath.Join(dir, server.SocketName), Trial: true,
		Listen: a.listens(ctx)})
	if err != nil {
		return e, fmt.Errorf("%s: engine %s: %w", engine.SettingsName, s.Name, err)
	}
	return e, nil
}

// checksOf converts findings to the form that is printed.
func checksOf(found []engine.Finding) (list []show.Check) {
	for _, f := range found {
		list = append(list, show.Check{Name: f.Name, OK: f.OK, Text: f.Text})
	}
	return list
}

// printFindings prints the findings and reports whether one is a problem.
func (a *app) printFindings(list []show.Check) (failed bool, err error) {
	for _, c := range list {
		failed = failed || !c.OK
		if a.JSON {
			if err := a.Print(c); err != nil {
				return failed, err
			}
		}
	}
	if !a.JSON {
		a.Printf("%s", show.Doctor(list, a.Place()))
	}
	return failed, nil
}

// firstLook examines an engine that was just added. Machines that join can do so after the server restarts.
func (a *app) firstLook(ctx context.Context, s *engine.Setting, accept bool) (failed bool, err error) {
	var joins []string
	if s.Kind == ssh.Kind {
		if joins, err = setting.Joins(s); err != nil {
			return false, err
		}
	}
	if len(joins) > 0 {
		if err := a.printTokens(ctx, s, joins); err != nil {
			return false, err
		}
		if with, err := setting.Read(s); err != nil || len(with.Hosts) == len(joins) {
			return false, err
		}
	}
	return a.examine(ctx, s, accept)
}

// listens returns the URL of the data folder's server, or "" if it has none or no server runs.
func (a *app) listens(ctx context.Context) string {
	c, err := a.Open(ctx)
	if err != nil {
		return ""
	}
	v, err := c.Server(ctx)
	if err != nil {
		return ""
	}
	return v.Listens
}

// acceptKeys stores host keys that ssh does not know, if the user confirms them.
func (a *app) acceptKeys(ctx context.Context, s *engine.Setting, accept bool) error {
	keys, err := ssh.UnknownKeys(ctx, s, a.Data)
	if err != nil {
		return fmt.Errorf("%s: engine %s: %w", engine.SettingsName, s.Name, err)
	}
	if len(keys) == 0 {
		return nil
	}
	for _, k := range keys {
		a.Notef("The key of %s is not known to ssh: %s\n", k.Host, k.Fingerprint)
	}
	_, terminal := command.Terminal(a.Err)
	if !accept && !terminal {
		return nil // the findings report the unknown keys and how to accept them
	}
	if !accept && !a.Confirmed(ctx, "Are these their keys? From now on no others are taken. [y/N] ", false) {
		return nil
	}
	return ssh.Accept(a.Data, s.Name, keys)
}

func (a *app) engineTestCmd() *cobra.Command {
	var accept bool
	cmd := &cobra.Command{Use: "test NAME", Short: "Check what an engine needs, and say what is missing",
		Args: command.Takes("NAME"),
		Long: "Checks what jobs will need of an engine, as scrimp doctor NAME does: commands, keys, disk, clock, " +
			"drivers, and " +
			"the way back from a machine to the server. It rents nothing.\n\nExit status: 0 all is well, 1 a check failed.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.testEngine(cmd.Context(), args[0], accept) }}
	cmd.Flags().BoolVar(&accept, "accept-host-keys", false, "accept the keys of machines that ssh does not know "+
		"(default: ask)")
	return cmd
}

func (a *app) testEngine(ctx context.Context, name string, accept bool) error {
	if err := a.owns(); err != nil {
		return err
	}
	s, err := a.settingOf(name)
	if err != nil {
		return err
	}
	failed, err := a.examine(ctx, s, accept)
	if err != nil {
		return err
	}
	if failed {
		return command.Failed
	}
	return nil
}

func (a *app) engineListCmd() *cobra.Command {
	return &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the engines and how they stand",
		Args: command.Takes(),
		Long: "Lists the engines of the data folder, and how they stand where its server runs. It starts no server." +
			command.PlainExit,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.owns(); err != nil {
				return err
			}
			settings, err := engine.Settings(a.Data)
			if err != nil {
				return err
			}
			list := make([]show.Engine, len(settings))
			for n, s := range settings {
				list[n] = show.Engine{Name: s.Name, Kind: s.Kind, State: "no server runs"}
			}
			if c, err := a.Open(cmd.Context()); err == nil {
				v, err := c.Server(cmd.Context())
				if err != nil {
					return err
				}
				list = show.Engines(list, v.Engines)
			}
			return command.ShowEach(a.App, list, show.EngineList(list, a.Place()))
		}}
}
