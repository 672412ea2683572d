package commands

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// consent is how a destructive command knows that it is meant.
type consent struct {
	yes bool
}

func (c *consent) flags(f *pflag.FlagSet) {
	f.BoolVar(&c.yes, "yes", false, "don't ask; needed where nobody can be asked")
}

// ask asks for word, unless --yes was given. Where nobody can be asked, that is a
// mistake of usage.
func (c *consent) ask(a *app, word, format string, args ...any) error {
	if c.yes {
		return nil
	}
	if !a.Asks {
		return usage(errors.New("there is no terminal to ask on; use --yes if you mean it"))
	}
	say(a.Err, "%s Type %q to go on: ", fmt.Sprintf(format, args...), word)
	line, err := bufio.NewReader(a.In).ReadString('\n')
	if strings.TrimSpace(line) != word {
		return refused("not confirmed; nothing was changed")
	}
	if err != nil && strings.TrimSpace(line) == "" {
		return refused("no answer; nothing was changed")
	}
	return nil
}
