"""An exported `.npz`, loaded with numpy: names, types and shapes of its arrays, and every position against the rules."""

import json
import os
import pathlib
import subprocess
import tempfile

import numpy

from referee import expect

# A game of Hex with a swap and one of Caro5 with an offer, each with its actions.
GAMES = {
    "hex?size=3": (
        "(;FF[4]GM[11]SZ[3]RE[B+];B[b1];W[swap-pieces];B[b2];W[a1];B[c1];W[c2];B[b3])",
        [1, 9, 4, 0, 2, 5, 7],
    ),
    "caro5": (
        "(;FF[4]GM[4]SZ[15]RU[Caro5]RE[B+Five];B[hh];W[ih];B[jj];DECISION[offer]W[ii];B[ig];DECISION[take-white]W[gi];"
        "B[jg];W[aa];B[kg];W[ca];B[lg];W[ea];B[mg])",
        [112, 113, 144, 227, 128, 98, 226, 126, 99, 0, 100, 2, 101, 4, 102],
    ),
}


def tengen(*args):
    """Standard output of `tengen ARGS...`."""
    return subprocess.run([os.environ["TENGEN"], *args], check=True, stdout=subprocess.PIPE, text=True).stdout


def rules(question, game, actions):
    return json.loads(tengen("rules", question, game, *map(str, actions), "--json"))


def check(game, text, actions):
    with tempfile.TemporaryDirectory() as folder:
        sgf, npz = pathlib.Path(folder, "game.sgf"), pathlib.Path(folder, "game.npz")
        sgf.write_text(text)
        tengen("games", "export", "--from", str(sgf), "--format", "npz", "--out", str(npz))
        with numpy.load(npz) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    shown = rules("show", game, [])
    starts = [rules("planes", game, actions[:ply])["planes"] for ply in range(len(actions))]
    plies, planes = len(actions), len(starts[0])
    shapes = {
        "planes": ("uint8", (plies, planes, shown["rows"], shown["cols"])),
        "policy": ("float32", (plies, shown["actions"])),
        "value": ("float32", (plies,)),
        "weight": ("float32", (plies,)),
        "scale": ("float32", (planes,)),
    }
    stated = {name: (str(array.dtype), array.shape) for name, array in found.items()}
    expect(stated == shapes, f"{game}: {stated}, not {shapes}")

    winner = rules("judge", game, actions)["winner_seat"]
    for ply, action in enumerate(actions):
        where = f"{game}, ply {ply}"
        rows = numpy.array([plane["rows"] for plane in starts[ply]], dtype=numpy.uint8)
        expect(numpy.array_equal(found["planes"][ply], rows), f"{where}: other planes")
        # Nothing was searched, so what is taught is the move that was played.
        only = numpy.zeros(shown["actions"], dtype=numpy.float32)
        only[action] = 1
        expect(numpy.array_equal(found["policy"][ply], only), f"{where}: {found['policy'][ply]}")
        seat = rules("judge", game, actions[:ply])["seat"]
        expect(found["value"][ply] == (1 if seat == winner else -1), f"{where}: {found['value'][ply]}")
    scale = numpy.array([plane["scale"] for plane in starts[0]], dtype=numpy.float32)
    expect(numpy.array_equal(found["scale"], scale), f"{game}: scales {found['scale']}")
    expect(bool((found["weight"] == 1).all()), f"{game}: weights {found['weight']}")
    print(f"{game}: {plies} positions of an .npz, read by numpy {numpy.__version__}: no difference")


for game, (text, actions) in GAMES.items():
    check(game, text, actions)
