package script

import (
	"fmt"
	"math"
)

type (
	literal     struct{ v any }
	variable    struct{ name string }
	this        struct{}
	conditional struct{ test, then, other node }
	binary      struct {
		op          string
		left, right node
	}
	unary struct {
		op string
		x  node
	}
	member struct{ of, key node }
	assign struct{ to, v node }
	call   struct {
		f    node
		args []node
	}
	arrayLiteral  []node
	objectLiteral struct {
		keys   []string
		values []node
	}
	function struct {
		params []string
		body   []statement
		arrow  bool
	}
)

func (n literal) eval(*frame) (any, error) { return n.v, nil }

func (n variable) eval(f *frame) (any, error) {
	at, ok := f.find(n.name)
	if !ok {
		return nil, fmt.Errorf("ReferenceError: %s is not defined", n.name)
	}
	return at.vars[n.name], nil
}

func (this) eval(f *frame) (any, error) { return f.this, nil }

func (n *function) eval(f *frame) (any, error) {
	return &closure{n.params, n.body, f}, nil
}

func (n conditional) eval(f *frame) (any, error) {
	v, err := n.test.eval(f)
	if err != nil {
		return nil, err
	}
	if truthy(v) {
		return n.then.eval(f)
	}
	return n.other.eval(f)
}

func (n unary) eval(f *frame) (any, error) {
	v, err := n.x.eval(f)
	if err != nil {
		return nil, err
	}
	switch n.op {
	case "!":
		return !truthy(v), nil
	case "-":
		return -number(v), nil
	}
	return number(v), nil
}

func (n binary) eval(f *frame) (any, error) {
	a, err := n.left.eval(f)
	if err != nil {
		return nil, err
	}
	if n.op == "&&" && !truthy(a) || n.op == "||" && truthy(a) {
		return a, nil
	}
	b, err := n.right.eval(f)
	if err != nil {
		return nil, err
	}
	switch n.op {
	case "&&", "||":
		return b, nil
	case "===":
		return strictEqual(a, b), nil
	case "!==":
		return !strictEqual(a, b), nil
	case "==", "!=":
		eq := strictEqual(a, b) || nothing(a) && nothing(b)
		return eq == (n.op == "=="), nil
	}
	s, isS := a.(string)
	t, isT := b.(string)
	if n.op == "+" && (isS || isT) {
		return f.spent.text("", a, b)
	}
	if isS && isT {
		switch n.op {
		case "<":
			return s < t, nil
		case ">":
			return s > t, nil
		case "<=":
			return s <= t, nil
		case ">=":
			return s >= t, nil
		}
	}
	x, y := number(a), number(b)
	switch n.op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "/":
		return x / y, nil
	case "%":
		return math.Mod(x, y), nil
	case "<":
		return x < y, nil
	case ">":
		return x > y, nil
	case "<=":
		return x <= y, nil
	}
	return x >= y, nil
}

func nothing(v any) bool {
	switch v.(type) {
	case nil, undefined:
		return true
	}
	return false
}

func (n member) eval(f *frame) (any, error) {
	of, err := n.of.eval(f)
	if err != nil {
		return nil, err
	}
	key, err := n.key.eval(f)
	if err != nil {
		return nil, err
	}
	switch x := of.(type) {
	case *object:
		if v, ok := x.fields[text(key)]; ok {
			return v, nil
		}
		return undefined{}, nil
	case *array:
		if i, ok := key.(float64); ok {
			if i >= 0 && i < float64(len(x.items)) && i == math.Trunc(i) {
				return x.items[int(i)], nil
			}
			return undefined{}, nil
		}
		if text(key) == "length" {
			return float64(len(x.items)), nil
		}
	case string:
		if text(key) == "length" {
			return float64(len([]rune(x))), nil
		}
	case nil, undefined:
		return nil, fmt.Errorf("TypeError: %s is not an object: has no property %s", text(of), text(key))
	}
	return nil, fmt.Errorf("%w: property %s", ErrUnsupported, text(key))
}

func (n assign) eval(f *frame) (any, error) {
	v, err := n.v.eval(f)
	if err != nil {
		return nil, err
	}
	switch to := n.to.(type) {
	case variable:
		at, ok := f.find(to.name)
		if !ok {
			return nil, fmt.Errorf("ReferenceError: %s is not defined", to.name)
		}
		at.vars[to.name] = v
	case member:
		of, err := to.of.eval(f)
		if err != nil {
			return nil, err
		}
		key, err := to.key.eval(f)
		if err != nil {
			return nil, err
		}
		switch x := of.(type) {
		case *object:
			x.set(text(key), v)
		case *array:
			i, ok := key.(float64)
			if !ok || i < 0 || i > float64(len(x.items)) || i != math.Trunc(i) {
				return nil, fmt.Errorf("%w: assignment to element %s", ErrUnsupported, text(key))
			}
			if int(i) == len(x.items) {
				x.items = append(x.items, v)
			} else {
				x.items[int(i)] = v
			}
		default:
			return nil, fmt.Errorf("TypeError: %s is not an object", text(of))
		}
	}
	return v, nil
}

func (n arrayLiteral) eval(f *frame) (any, error) {
	a := &array{}
	for _, x := range n {
		v, err := x.eval(f)
		if err != nil {
			return nil, err
		}
		a.items = append(a.items, v)
	}
	return a, nil
}

func (n objectLiteral) eval(f *frame) (any, error) {
	o := newObject()
	for i, k := range n.keys {
		v, err := n.values[i].eval(f)
		if err != nil {
			return nil, err
		}
		o.set(k, v)
	}
	return o, nil
}

func (n call) eval(f *frame) (any, error) {
	if err := f.spent.step(); err != nil {
		return nil, err
	}
	args := make([]any, len(n.args))
	for i, a := range n.args {
		v, err := a.eval(f)
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	if m, ok := n.f.(member); ok {
		of, err := m.of.eval(f)
		if err != nil {
			return nil, err
		}
		if a, ok := of.(*array); ok {
			key, err := m.key.eval(f)
			if err != nil {
				return nil, err
			}
			return a.method(f, text(key), args)
		}
	}
	if v, ok := n.f.(variable); ok && v.name == "NumberInt" || ok && v.name == "Number" || ok && v.name == "NumberLong" {
		if _, own := f.find(v.name); !own && len(args) == 1 {
			return number(args[0]), nil
		}
	}
	fn, err := n.f.eval(f)
	if err != nil {
		return nil, err
	}
	return apply(fn, args)
}

func apply(fn any, args []any) (any, error) {
	switch x := fn.(type) {
	case *closure:
		return x.call(x.outer.this, args)
	case func([]any) (any, error):
		return x(args)
	}
	return nil, fmt.Errorf("TypeError: %s is not a function", text(fn))
}

// method calls a method of an array.
func (a *array) method(f *frame, name string, args []any) (any, error) {
	arg := func(i int) any {
		if i < len(args) {
			return args[i]
		}
		return undefined{}
	}
	switch name {
	case "push":
		a.items = append(a.items, args...)
		return float64(len(a.items)), nil
	case "join":
		sep := ","
		if s, ok := arg(0).(string); ok {
			sep = s
		}
		return f.spent.text(sep, a.items...)
	case "reduce":
		items := a.items
		acc := arg(1)
		if len(args) < 2 {
			if len(items) == 0 {
				return nil, fmt.Errorf("TypeError: reduce of empty array with no initial value")
			}
			acc, items = items[0], items[1:]
		}
		for i, x := range items {
			v, err := apply(arg(0), []any{acc, x, float64(i), a})
			if err != nil {
				return nil, err
			}
			acc = v
		}
		return acc, nil
	case "map", "filter", "forEach":
		out := &array{}
		for i, x := range a.items {
			v, err := apply(arg(0), []any{x, float64(i), a})
			if err != nil {
				return nil, err
			}
			switch {
			case name == "map":
				out.items = append(out.items, v)
			case name == "filter" && truthy(v):
				out.items = append(out.items, x)
			}
		}
		if name == "forEach" {
			return undefined{}, nil
		}
		return out, nil
	}
	return nil, fmt.Errorf("%w: method %s of an array", ErrUnsupported, name)
}
