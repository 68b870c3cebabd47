"""Hex with and without swap, Amazons and Go against OpenSpiel."""

import random

import pyspiel

from referee import GAMES, Referee, expect, same_random_games


def main():
    referee = Referee()
    # OpenSpiel's swap is swap-pieces too, and its action follows the cells.
    for size in (3, 5, 8, 11):
        same_random_games(referee, f"hex?size={size}", f"hex(board_size={size},swap=True)")
    same_random_games(referee, "hex?size=6&swap=no", "hex(board_size=6)")
    same_random_games(referee, "hex?size=3&cols=7", "hex(num_rows=3,num_cols=7)")
    same_random_games(referee, "hex?size=7&cols=4", "hex(num_rows=7,num_cols=4)")
    same_random_games(referee, "amazons", "amazons")
    # On 6x6 OpenSpiel's first player sits at the bottom, ours at the top.
    same_random_games(referee, "amazons?size=6", "amazons(board_size=6)", lambda _, cell: upside_down(cell, 6))
    for size, komi in ((2, 0.5), (3, 0.0), (5, 7.5), (9, 7.5)):
        same_random_go(referee, size, komi, GAMES if size < 9 else GAMES // 10)


def upside_down(cell, side):
    """The cell in a numbering whose rows begin at the other end; what is no cell stays."""
    if cell >= side * side:
        return cell
    return (side - 1 - cell // side) * side + cell % side


def same_random_go(referee, size, komi, games):
    """Like `same_random_games`, where the two rules differ in two things. OpenSpiel forbids suicide, which Tromp-Taylor
    allows: what we allow beyond it must be suicide. And it ends a game that repeats a board, which we do not let
    happen: what we forbid must be such an end. Games go on with what both allow."""
    ours = f"go?size={size}&komi={komi:g}"
    rng = random.Random(ours)
    plies_max = 2 * size * size + 64
    game = pyspiel.load_game(f"go(board_size={size},komi={komi},max_game_length={plies_max})")
    plies = suicides = repetitions = 0
    for _ in range(games):
        state = game.new_initial_state()
        actions, seen = [], []
        while not state.is_terminal():
            theirs = {upside_down(action, size): action for action in state.legal_actions()}
            repeats = {cell for cell, action in theirs.items() if cell < size * size and is_repetition(state, action)}
            seen.append((state.current_player(), set(theirs), repeats, stones(state, size)))
            cell = rng.choice(sorted(set(theirs) - repeats))
            actions.append(cell)
            state.apply_action(theirs[cell])
        answer = referee.ask(ours, actions)
        where = f"{ours} after {actions}"
        expect(answer["refused"] is None, f"{where}: {answer['refused']}")
        for ply, ((seat, theirs, repeats, board), position) in enumerate(zip(seen, answer["positions"])):
            at = f"{where}, ply {ply}"
            legal = set(position["legal"])
            expect(position["seat"] == seat, f"{at}: {position['seat']} acts, not {seat}")
            # The simple ko is among what OpenSpiel forbids; it is a repetition, so neither side allows it.
            expect(theirs - legal == repeats, f"{at}: forbidden {theirs - legal}, repetitions are {repeats}")
            for cell in legal - theirs:
                expect(is_suicide(board, cell, "XO"[seat], size), f"{at}: {cell} is no suicide")
            suicides += len(legal - theirs)
            repetitions += len(repeats)
        returns = state.returns()
        winner = None if returns[0] == 0 else int(returns[0] < 0)
        expect(answer["reason"] is not None, f"{where}: the game is over")
        expect(answer["winner"] == winner, f"{where}: winner {answer['winner']}, not {winner}")
        plies += len(actions)
    print(
        f"{ours}: {games} random games of go, {plies} plies: no difference but {suicides} suicides that Tromp-Taylor"
        f" allows; {repetitions} repetitions forbidden"
    )


def is_repetition(state, action):
    """Whether OpenSpiel ends the game at `action` because the board was there before: a stone never ends it otherwise
    but at the limit of its length."""
    return state.child(action).is_terminal() and state.move_number() + 1 < state.get_game().max_game_length()


def stones(state, size):
    """The board, top row first, as one text of X, O and +."""
    rows = [line.split()[1] for line in str(state).splitlines() if line.split() and line.split()[0].isdigit()]
    expect(len(rows) == size, f"a board of {size} rows: {state}")
    return "".join(rows)


def is_suicide(board, cell, colour, size):
    """Whether a stone of `colour` on `cell` joins at least one own stone, has no liberty and takes none."""
    if board[cell] != "+":
        return False
    board = board[:cell] + colour + board[cell + 1 :]
    other = "O" if colour == "X" else "X"
    own, free = group(board, cell, size)
    captures = any(board[n] == other and not group(board, n, size)[1] for n in neighbours(cell, size))
    return not free and not captures and len(own) > 1


def neighbours(cell, size):
    row, col = divmod(cell, size)
    steps = ((row - 1, col), (row + 1, col), (row, col - 1), (row, col + 1))
    return [r * size + c for r, c in steps if 0 <= r < size and 0 <= c < size]


def group(board, cell, size):
    """The stones joined with `cell`, and their liberties."""
    own, free, todo = {cell}, set(), [cell]
    while todo:
        for n in neighbours(todo.pop(), size):
            if board[n] == "+":
                free.add(n)
            elif board[n] == board[cell] and n not in own:
                own.add(n)
                todo.append(n)
    return own, free


main()
