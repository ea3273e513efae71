package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutationsIn returns all mutations that can be made in the files of a folder. The tests of the folder and of the other
// packages must detect them.
func mutationsIn(dir string, tests []string) ([]Mutation, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var out []Mutation
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if !ast.IsGenerated(file) {
			c := changer{file: filepath.ToSlash(filepath.Clean(name)), text: text, files: files}
			ast.Inspect(file, c.visit)
			for _, m := range c.out {
				if len(tests) > 0 {
					m.Tests = append([]string{"./" + filepath.ToSlash(filepath.Clean(dir))}, tests...)
				}
				out = append(out, m)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("nothing to change in %s", dir)
	}
	return out, nil
}

type changer struct {
	file  string
	text  []byte
	files *token.FileSet
	out   []Mutation
}

// operators are the replacements of binary operators.
var operators = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ,
	token.GEQ: token.GTR, token.LAND: token.LOR, token.LOR: token.LAND, token.SUB: token.ADD, token.MUL: token.QUO,
}

func (c *changer) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if to, ok := operators[n.Op]; ok {
			c.replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to.String(), n.Op.String()+" became "+to.String())
		}
	case *ast.IfStmt:
		from, to := c.files.Position(n.Cond.Pos()).Offset, c.files.Position(n.Cond.End()).Offset
		c.replace(n.Cond.Pos(), n.Cond.End(), "!("+string(c.text[from:to])+")", "a condition was negated")
	case *ast.BlockStmt:
		for _, s := range n.List {
			c.statement(s)
		}
	case *ast.CaseClause:
		for _, s := range n.Body {
			c.statement(s)
		}
	case *ast.CompositeLit:
		c.elements(n)
	case *ast.Ident:
		if n.Name == "true" || n.Name == "false" {
			c.replace(n.Pos(), n.End(), strconv.FormatBool(n.Name == "false"), n.Name+" was negated")
		}
	case *ast.BasicLit:
		if i, err := strconv.Atoi(n.Value); err == nil {
			c.replace(n.Pos(), n.End(), strconv.Itoa(i+1), n.Value+" became "+strconv.Itoa(i+1))
		}
	}
	return true
}

// elements drops each element of a table: a list, a map, or named fields.
func (c *changer) elements(n *ast.CompositeLit) {
	for i, e := range n.Elts {
		_, isNamed := e.(*ast.KeyValueExpr)
		_, isList := n.Type.(*ast.ArrayType)
		end := n.Rbrace
		if i+1 < len(n.Elts) {
			end = n.Elts[i+1].Pos()
		}
		if name, _ := e.(*ast.Ident); isNamed || isList && (name == nil || name.Name != "nil") {
			c.replace(e.Pos(), end, "", "an element was dropped")
		}
	}
}

// statement drops a statement if the program can still be compiled.
func (c *changer) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.DeferStmt, *ast.IncDecStmt:
	case *ast.BranchStmt:
		if s.Label != nil {
			return
		}
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return
		}
	default:
		return
	}
	c.replace(s.Pos(), s.End(), "", "a statement was dropped")
}

// replace adds a change of whole lines, with enough context to make the old text unique in the file.
func (c *changer) replace(from, to token.Pos, text, why string) {
	i, j := c.files.Position(from).Offset, c.files.Position(to).Offset
	begin, end := i, j
	for {
		begin = bytes.LastIndexByte(c.text[:max(0, begin-1)], '\n') + 1
		if k := bytes.IndexByte(c.text[end:], '\n'); k >= 0 {
			end += k
		}
		if bytes.Count(c.text, c.text[begin:end]) == 1 {
			break
		}
		if begin == 0 && end == len(c.text) {
			return
		}
		end = min(end+1, len(c.text))
	}
	if trimmed := begin + len(c.text[begin:i]) - len(bytes.TrimLeft(c.text[begin:i], "\t")); bytes.Count(c.text,
		c.text[trimmed:end]) == 1 {
		begin = trimmed
	}
	old := string(c.text[begin:end])
	changed := slices.Concat(c.text[begin:i], []byte(text), c.text[j:end])
	c.out = append(c.out, Mutation{Title: why, File: c.file, Old: old, New: string(changed), found: true})
}
