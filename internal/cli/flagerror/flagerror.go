// Package flagerror words the errors of flags: each names the flag, and the command that explains it.
package flagerror

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Of completes an error of cobra about the flags of a command.
func Of(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w: %s --help lists the flags", plain(err), cmd.CommandPath())
}

// plain rewrites the error of a numeric flag, and of a negative number among the arguments, in plain words.
func plain(err error) error {
	unknown, is := errors.AsType[*pflag.NotExistError](err)
	if is && strings.ContainsAny(unknown.GetSpecifiedName(), "0123456789.") {
		if group := unknown.GetSpecifiedShortnames(); group != "" {
			return fmt.Errorf("-%s is read as a flag, and no flag has this name", group)
		}
	}
	bad, is := errors.AsType[*pflag.InvalidValueError](err)
	number, isNumber := errors.AsType[*strconv.NumError](err)
	if !is || !isNumber || bad.GetFlag() == nil {
		return err
	}
	flag := bad.GetFlag()
	cause := "is no " + flag.Value.Type()
	switch {
	case errors.Is(number, strconv.ErrRange):
		cause = "is too large or too small"
	case strings.HasPrefix(flag.Value.Type(), "int"):
		cause = "is not a whole number"
	case strings.HasPrefix(flag.Value.Type(), "uint"):
		cause = "is not a whole number from 0 on"
	case strings.HasPrefix(flag.Value.Type(), "float"):
		cause = "is not a number"
	}
	return fmt.Errorf("--%s %q %s", flag.Name, bad.GetValue(), cause)
}

// Require makes a command name the required flags that are missing, with the command that explains them. Cobra's
// own check, which comes later, says only that they are not set.
func Require(c *cobra.Command) {
	args := c.Args
	if !hasRequired(c) || args == nil {
		return
	}
	c.Args = func(cmd *cobra.Command, list []string) error {
		if err := args(cmd, list); err != nil {
			return err
		}
		missing := required(cmd, func(f *pflag.Flag) bool { return !f.Changed })
		if len(missing) == 0 {
			return nil
		}
		are := "is"
		if len(missing) > 1 {
			are = "are"
		}
		return fmt.Errorf("%s %s missing: %s --help lists the flags", strings.Join(missing, " and "), are, cmd.CommandPath())
	}
}

func hasRequired(c *cobra.Command) bool {
	return len(required(c, func(*pflag.Flag) bool { return true })) > 0
}

// required returns the required flags of a command that a condition holds for, by name.
func required(c *cobra.Command, of func(*pflag.Flag) bool) (list []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if slices.Equal(f.Annotations[cobra.BashCompOneRequiredFlag], []string{"true"}) && of(f) {
			list = append(list, "--"+f.Name)
		}
	})
	return list
}
