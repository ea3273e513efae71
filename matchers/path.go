package matchers

import (
	"strconv"
	"strings"
)

// path is the place in the expected document, pushed and popped on the way.
type path struct {
	base  string
	steps []step
}

// step is a key, or an index if key is "".
type step struct {
	key   string
	index int
	isKey bool
}

func (p *path) key(key string) { p.steps = append(p.steps, step{key: key, isKey: true}) }
func (p *path) index(i int)    { p.steps = append(p.steps, step{index: i}) }
func (p *path) pop()           { p.steps = p.steps[:len(p.steps)-1] }

// atKey and atIndex do something one step further down.
func (p *path) atKey(key string, do func()) {
	p.key(key)
	do()
	p.pop()
}

func (p *path) atIndex(i int, do func()) {
	p.index(i)
	do()
	p.pop()
}

// String gives a form like expectEvents[0].events[2].command["a.b"].
func (p *path) String() string {
	var b strings.Builder
	b.WriteString(p.base)
	for _, s := range p.steps {
		switch {
		case !s.isKey:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case s.key == "" || strings.ContainsAny(s.key, ".[]\" \t\n"):
			b.WriteString("[" + strconv.Quote(s.key) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		}
	}
	return b.String()
}
