package command

// Show prints v as JSON, or its text.
func (a *App) Show(v any, text string) error { return a.Showf(v, "%s", text) }

// Showf prints v as JSON, or a text as Printf does.
func (a *App) Showf(v any, format string, args ...any) error {
	if a.JSON {
		return a.Print(v)
	}
	a.Printf(format, args...)
	return nil
}

// ShowEach prints each value of a list as JSON, or the text of all.
func ShowEach[T any](a *App, list []T, text string) error {
	if a.JSON {
		return PrintEach(a, list)
	}
	a.Printf("%s", text)
	return nil
}

// PrintEach prints each value of a list as JSON.
func PrintEach[T any](a printer, list []T) error {
	for _, v := range list {
		if err := a.Print(v); err != nil {
			return err
		}
	}
	return nil
}

// A printer prints a value as JSON: an *App, or a command's own type that contains one.
type printer interface{ Print(v any) error }
